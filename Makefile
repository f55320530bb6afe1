# make            build/.../gpipe, linked as ./gpipe
# make demo       sets up, builds, runs pipelines/edges.yaml on a real photo
# make check      builds, runs the quick tests            make check T="parse expr"
# make check-all  builds, runs all tests
# make torture    makes calls fail and sends signals, over pipelines      make torture PART=0.1
# make bench      gpipe beside what else moves frames     make bench BENCH="--only host --rounds 5"
# make fuzz       libFuzzer, 20 s for each harness        make fuzz FUZZ="yaml png" SECONDS=600 SEED=7
# make deps       installs what is missing to build (Debian, Ubuntu); make deps-tests: to test, too
# make install PREFIX=/usr/local    the command, its man page, completions; the library with its headers, for pkg-config
# make wheel      build/wheel/gpipe-VERSION-....whl: the package for Python, with library and command
# make deb        packages for this Debian or Ubuntu, in build/deb; make check-packages tries them in a fresh one
# make dist       a tarball of the sources, in build;     make site: the documentation as pages, in build/site/pages
# make help       shows this
#
# CUDA=0          CPU back end only (also when there is no nvcc)
# SAN=address,undefined | thread     a sanitized build, without CUDA unless CUDA=1
# LUA=luajit      LuaJIT in place of Lua 5.4
# STATIC=1        needs only libc at run time: to carry to another machine
# MPICC=mpicc     of the MPI whose mpirun or srun starts ranks; without one there are none
# V=1             shows the commands

PREFIX ?= /usr/local
CC     ?= cc
CXX    ?= c++
NVCC   ?= $(or $(shell command -v nvcc),$(wildcard /usr/local/cuda/bin/nvcc))
CUDA   ?= $(if $(SAN),0,$(if $(NVCC),1,0))
LUA    ?= lua5.4
STATIC ?= 0
MPICC  ?= $(shell command -v mpicc)
SAN    ?=
CFLAGS ?= -O2 -g
ARCHS  ?= 75 80 90 100
T      ?=

# == nothing to set below this line ==========================================

comma := ,
empty :=
space := $(empty) $(empty)
NVCC  := $(NVCC)
CUDA  := $(CUDA)
B     ?= build/$(if $(SAN),$(subst $(comma),-,$(SAN)),plain)-cuda$(CUDA)-$(LUA)$(if $(filter 1,$(STATIC)),-static)
B     := $B
say    = $(if $V,,@echo '  $1	$@';)
again  = $(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))
# make -n runs each line that names make.
DRY    = $(findstring n,$(firstword -$(MAKEFLAGS)))
# These call make again: one after the other, and after what this make was asked for, so that no two build the same file.
AGAIN  := check check-all demo bench fuzz deb wheel
before := $(filter-out $(AGAIN) clean,$(MAKECMDGOALS))
$(foreach g,$(filter $(AGAIN),$(MAKECMDGOALS)),$(eval $g: | $(before))$(eval before += $g))
PKGS  := yaml-0.1 $(LUA) libdeflate libjpeg zlib
PKGS_COMMAND := jansson
# Headers alone, where they are there: the libraries are opened by the first pipeline that has a video.
PKGS_VIDEO := libavformat libavcodec libavutil
VIDEO := $(shell pkg-config --exists 'libavformat >= 59' $(PKGS_VIDEO) 2>/dev/null && echo -DGP_VIDEO $$(pkg-config --cflags $(PKGS_VIDEO)))
WARN  := -Wall -Wextra -Wno-unused-parameter -Wpedantic -Wshadow -Wvla -Wwrite-strings
CWARN := -Wstrict-prototypes -Wmissing-prototypes
INC   := -Iengine/include -Iengine $(patsubst %/,-I%,$(sort $(wildcard stages/*/))) -Ilua -Ikernels -Itests/lib -I$B
ALL   := $(WARN) -ffunction-sections -fdata-sections -MMD -MP $(INC) \
         -D_GNU_SOURCE -DGP_CUDA=$(CUDA) $(shell pkg-config --cflags $(PKGS) $(PKGS_COMMAND) 2>/dev/null) \
         -pthread -ffp-contract=off -fPIC -fvisibility=hidden
COMMIT := $(shell git rev-parse --short HEAD 2>/dev/null)
ALL_C := -std=c11 $(ALL) $(CWARN) $(CFLAGS)
ALL_X := -std=c++17 $(ALL) $(CFLAGS) -fno-exceptions -fno-rtti

static = $(shell pkg-config --static --libs $1 | sed -E 's/-l(yaml|lua5.4|luajit-5.1|deflate|jpeg|z|check_pic|check|subunit|jansson)\b/-l:lib\1.a/g')
ifeq ($(STATIC),1)
LIBS  := $(call static,$(PKGS)) -static-libgcc
COMMAND = $(call static,$(PKGS_COMMAND))
CHECK  = $(call static,check)
else
LIBS  := $(shell pkg-config --libs $(PKGS) 2>/dev/null)
COMMAND = $(shell pkg-config --libs $(PKGS_COMMAND) 2>/dev/null)
CHECK  = $(shell pkg-config --libs check)
endif
SYSTEM := -pthread -ldl -lm -lrt -Wl,--gc-sections
ifneq ($(SAN),)
ALL_C += -fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer
ALL_X += -fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer
ALL_X += $(if $(findstring clang,$(CXX)),-fno-sanitize=function)   # needs the C++ library
SYSTEM += -fsanitize=$(SAN)
endif

KINDS   := $(sort $(wildcard stages/*.c))
KERNELS := $(sort $(wildcard kernels/*.cu))
ONCPU   := $(sort $(wildcard kernels/*.cpp))
LUAMODS := $(sort $(wildcard lua/*.lua))
CLI     := $(wildcard engine/cli/*.c)
RANKS   := $(wildcard engine/ranks/*.c)
CLI_OBJ := $(patsubst %.c,$B/%.o,$(CLI) $(RANKS)) $B/verbs.o
# Each is a folder of engine/ with a gp_backend. OPENED opens libraries for GPUs while gpipe runs: every build has it.
BACKENDS := cpu $(if $(filter 1,$(CUDA)),cuda)
OPENED  := engine/cuda/libraries.c engine/cuda/cublaslt.c
ENGINE  := $(OPENED) $(filter-out $(CLI) $(RANKS) engine/mpi/%.c $(if $(filter cuda,$(BACKENDS)),$(OPENED),engine/cuda/%.c),$(wildcard engine/*/*.c))
LIBSRC  := $(ENGINE) $(KINDS) $(wildcard stages/*/*.c) $(wildcard lua/*.c)
OBJ     := $(LIBSRC:%.c=$B/%.o) $(KERNELS:%.cu=$B/%.cpu.o) $(ONCPU:%.cpp=$B/%.cpu.o) $B/embed.o $B/kinds.o $B/backends.o
EMBED   := $(sort $(wildcard engine/cli/topics/*.md engine/cli/starters/*.yaml engine/cli/starters/plugin/*)) stages/format/colormaps.bin engine/base/embed.h engine/cpu/fiber.h kernels/cpu.h kernels/kernel.h kernels/half.h kernels/groups.h $(LUAMODS) $(filter-out %.c %.h,$(wildcard engine/cli/page* engine/cli/completion*))
CUROOT  := $(patsubst %/bin/nvcc,%,$(realpath $(NVCC)))
ALL_C   += $(CUROOT:%=-isystem %/include)
ifeq ($(CUDA),1)
SYSTEM  += -L$(CUROOT)/lib64 -lcudart_static
FATBIN  := $(KERNELS:%.cu=$B/%.fatbin)
EMBED   += kernels/resident.h kernels/map.h kernels/slide.h kernels/join.h kernels/fold.h kernels/lines.h kernels/lanes.h kernels/resize.h kernels/warp.h kernels/copy.h kernels/pad.h kernels/quantile.h kernels/sort.h kernels/edge.h kernels/expr_ops.h $(KERNELS)
endif
LIBS    += $(SYSTEM)
S       := $(if $(T),-some)
# A suite is in tests/test_NAME.c, or on either back end in tests/lib/NAME_cases.c, or in both.
BOTH    := $(patsubst tests/lib/%_cases.c,%,$(wildcard tests/lib/*_cases.c))
SUITE_NAMES := $(sort $(patsubst tests/test_%.c,%,$(wildcard tests/test_*.c)) $(BOTH))
SUITES  := $(or $(T),$(SUITE_NAMES))
ifneq ($(filter-out $(SUITE_NAMES),$(SUITES)),)
$(error no suite $(patsubst %,'%',$(filter-out $(SUITE_NAMES),$(SUITES))); the suites are $(SUITE_NAMES))
endif
MPI     := $(if $(MPICC),$B/gpipe-mpi.so)
GPUTEST := $(sort $(wildcard tests/gpu/test_*.c))

all: $B/gpipe $(MPI)
	@ln -sf $B/gpipe gpipe

# Plug-ins call the functions of the public headers, and only these: all are there, and seen.
LIBALL := -Wl,--whole-archive $B/libgpipe.a -Wl,--no-whole-archive -Wl,--export-dynamic-symbol='gp_*'
$B/gpipe: $(CLI_OBJ) $B/libgpipe.a
	$(call say,link)$(CC) $(LDFLAGS) -o $@ $(CLI_OBJ) $(LIBALL) $(COMMAND) $(LIBS)

$B/libgpipe.a: $(OBJ)
	@rm -f $@
	$(call say,ar)ar rcs $@ $^

# Opened where a launcher of MPI started gpipe, which finds it beside itself or in lib/gpipe.
$B/gpipe-mpi.so: engine/mpi/shim.c engine/mpi/shim.h $B/mpicc $B/flags
	$(call say,mpicc)$(MPICC) -std=c11 $(WARN) $(CWARN) $(CFLAGS) -Iengine -fPIC -fvisibility=hidden -shared -o $@ $<

$B/mpicc: FORCE
	$(call note_change,$(MPICC))

# Other flags than last time: all is compiled again. Before anything is compiled: is there
# what it needs?
TOOLS = $(filter-out -%,$(CC) $(CXX)) pkg-config $(if $(filter 1,$(CUDA)),$(or $(NVCC),nvcc))
USES  = $(PKGS) libmicrohttpd $(PKGS_COMMAND)
check-built check-all-built gpu-tests: USES += check
$B/flags: FORCE
	@missing=; for t in $(TOOLS); do command -v $$t >/dev/null || missing="$$missing $$t"; done; \
	if command -v pkg-config >/dev/null; then \
	  for p in $(USES); do pkg-config --exists $$p || missing="$$missing $$p"; done; fi; \
	[ -z "$$missing" ] || { echo "gpipe cannot be built, there is no:$$missing" >&2; \
	  echo "'make deps' installs what is missing (Debian, Ubuntu); CUDA=0 needs no nvcc" >&2; exit 1; }
	$(call note_change,$(CC) $(CXX) $(ALL_C) $(ALL_X))

$B/%.o: %.c $B/flags
	@mkdir -p $(@D)
	$(call say,cc)$(CC) $(ALL_C) -c -o $@ $<

$B/%.o: $B/%.c $B/flags
	$(call say,cc)$(CC) $(ALL_C) -c -o $@ $<

# The library for others to link with: of its symbols only those of the public headers show.
VERSION := $(shell sed -n 's/^.define GP_VERSION "\(.*\)"/\1/p' engine/include/gpipe/gpipe.h)
$B/libgpipe.so: $(OBJ)
	$(call say,link)$(CC) $(LDFLAGS) -shared -Wl,-soname,libgpipe.so.$(VERSION) -Wl,--exclude-libs,ALL -o $@ $^ $(LIBS)

$B/gpipe.pc: FORCE
	@mkdir -p $(@D)
	@{ echo 'prefix=$(PREFIX)'; echo 'libdir=$${prefix}/lib'; echo 'includedir=$${prefix}/include'; \
	   echo 'luadir=$${prefix}/share/gpipe/lua'; echo 'plugindir=$${prefix}/lib/gpipe/plugins'; echo; echo 'Name: gpipe'; \
	   echo 'Description: declarative GPU pipelines'; echo 'Version: $(VERSION)'; \
	   echo 'Cflags: -I$${includedir}'; echo 'Libs: -L$${libdir} -lgpipe'; \
	   echo 'Libs.private: $(shell pkg-config --static --libs $(PKGS)) $(if $(filter 1,$(CUDA)),$(CUROOT)/lib64/libcudart_static.a) -pthread -ldl -lm -lrt'; \
	 } > $@

$B/video: FORCE
	$(call note_change,$(VIDEO) $(if $(VIDEO),$(shell pkg-config --modversion $(PKGS_VIDEO))))
VIDEO_O := $(patsubst %,$B/stages/format/video_%.o,file input output picture)
$(VIDEO_O): private ALL_C += $(VIDEO)
$(VIDEO_O): $B/video

# Loops over the rows of pictures and of matrices, and many lines, for vectors.
$B/stages/format/png_filter.o $B/stages/fft/complex.o $B/stages/fft/lines.o $B/stages/matmul/loops.o: private ALL_C += -O3

# A kernel's one source, twice: by the C++ compiler for the CPU back end, and
# by nvcc, for each architecture and as PTX for newer ones.
$B/%.cpu.o: %.cu kernels/cpu.h $B/flags
	@mkdir -p $(@D)
	$(call say,c++)$(CXX) $(ALL_X) -O3 -x c++ -include kernels/cpu.h -DGP_FILE=$(*F) -c -o $@ $<

# One that only the CPU back end has.
$B/%.cpu.o: %.cpp kernels/cpu.h $B/flags
	@mkdir -p $(@D)
	$(call say,c++)$(CXX) $(ALL_X) -O3 -include kernels/cpu.h -DGP_FILE=$(*F) -c -o $@ $<

CUFLAGS := -std=c++17 -O3 -fmad=false -Ikernels --compress-mode=size --threads 2 \
           $(foreach a,$(ARCHS),-gencode=arch=compute_$a,code=sm_$a) \
           -gencode=arch=compute_$(lastword $(ARCHS)),code=compute_$(lastword $(ARCHS))
$B/%.fatbin: %.cu $B/cuflags
	@mkdir -p $(@D)
	$(call say,nvcc)$(NVCC) $(CUFLAGS) -MD -MF $@.d -fatbin -o $@ $<

# One line, changed only when what it says changes: what depends on it is then made again.
define note_change
@mkdir -p $(@D)
@echo '$1' | cmp -s - $@ || echo '$1' > $@
endef
$B/cuflags: FORCE
	$(call note_change,$(NVCC) $(CUFLAGS))

# The list of kinds is the list of files in stages/, and `loop` (engine/run/loop.c); kernels likewise.
$B/kinds.c: FORCE
	@mkdir -p $(@D)
	@{ echo '/* Made by the Makefile from the files in stages/. */'; \
	   echo '#include "gpipe/gpipe.h"'; \
	   for k in $(basename $(notdir $(KINDS))) loop; do echo "extern const gp_kind gp_kind_$$k;"; done; \
	   echo 'bool gp_register_builtin(gp_registry *r, gp_errs *errs)'; echo '{'; \
	   echo '    (void)r, (void)errs;'; echo '    return true'; \
	   for k in $(basename $(notdir $(KINDS))) loop; do echo "        && gp_register(r, &gp_kind_$$k, errs)"; done; \
	   echo '        ;'; echo '}'; } > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@
# Constants as a table: its header, their type, their names behind that, the table's name.
define make_table
@mkdir -p $(@D)
@{ echo '/* Made by the Makefile. */'; echo '#include "$1"'; \
   for x in $3; do echo "extern const $2 $2_$$x;"; done; \
   echo 'const $2 *const $4[] = {'; for x in $3; do echo "    &$2_$$x,"; done; echo '    0 };'; } > $@.new
@cmp -s $@.new $@ && rm $@.new || mv $@.new $@
endef
$B/backends.c: FORCE
	$(call make_table,device/backend.h,gp_backend,$(BACKENDS),gp_backends)
# A verb of the command is a file with a gp_verb.
verbs_in = $(shell sed -n 's/^const gp_verb gp_verb_\([a-z]*\) = .*/\1/p' $1)
$B/verbs.c: FORCE
	$(call make_table,cli/verb.h,gp_verb,$(call verbs_in,$(CLI)),gp_verbs)
$B/tests/verbs.c: FORCE
	$(call make_table,cli/verb.h,gp_verb,$(call verbs_in,$(CLI) tests/verb.c),gp_verbs)
$B/embed.c: FORCE
	@mkdir -p $(@D)
	@{ echo '/* Made by the Makefile: files that travel in the binary. */'; echo '#include "base/embed.h"'; \
	   i=0; for f in $(EMBED) $(FATBIN); do i=$$((i+1)); \
	     printf '__asm__(".section .rodata\\n.balign 64\\ngp_e%d:\\n.incbin \\"%s\\"\\ngp_e%d_end:\\n.byte 0\\n.previous\\n");\nextern const unsigned char gp_e%d[], gp_e%d_end[];\n' $$i $$f $$i $$i $$i; done; \
	   for k in $(basename $(notdir $(KERNELS) $(ONCPU))); do echo "extern const gp_cpu_entry gp_cpu_entries_$$k[];"; done; \
	   echo 'const gp_blob gp_blobs[] = {'; \
	   i=0; for f in $(EMBED) $(FATBIN:$B/%=%); do i=$$((i+1)); echo "    { \"$$f\", gp_e$$i, gp_e$${i}_end },"; done; \
	   echo '    { 0 } };'; \
	   echo 'const gp_cpu_entry *const gp_cpu_tables[] = {'; \
	   for k in $(basename $(notdir $(KERNELS) $(ONCPU))); do echo "    gp_cpu_entries_$$k,"; done; \
	   echo '    0 };'; } > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@
$B/embed.o: $(EMBED) $(FATBIN)
$B/engine/cli/version.o: ALL_C += -DGP_COMMIT='"$(COMMIT)"' -DGP_LUA='"$(LUA)"' -DGP_BACKENDS='"$(subst $(space),$(comma) ,$(strip $(BACKENDS)))"'
$B/engine/cli/version.o: $B/commit
$B/commit: FORCE
	$(call note_change,$(COMMIT))

# One program with all suites, so that check prints one total; another with
# those that need a GPU.
define list_suites
@mkdir -p $(@D)
@{ echo '#include <check.h>'; \
   for s in $1; do echo "Suite *suite_$$s(void);"; done; \
   echo 'typedef Suite *(*suite)(void);'; echo 'extern const suite suites[];'; echo 'const suite suites[] = {'; \
   for s in $1; do echo "    suite_$$s,"; done; echo '    0 };'; } > $@.new
@cmp -s $@.new $@ && rm $@.new || mv $@.new $@
endef
$B/tests/suites$S.c: FORCE
	$(call list_suites,$(SUITES))
$B/tests/gpu/suites.c: FORCE
	$(call list_suites,$(sort $(GPUTEST:tests/gpu/test_%.c=%) $(BOTH)))
$B/tests/run$S: $B/tests/run.o $B/tests/suites$S.o $B/engine/cli/bench_best.o $(patsubst %.c,$B/%.o,$(wildcard $(SUITES:%=tests/test_%.c))) $(patsubst %.c,$B/%.o,$(wildcard tests/lib/*.c)) $B/libgpipe.a | $B/tests/nvtx_inject.so $B/tests/nvjpeg_fake.so $B/tests/cufft_fake.so $B/tests/nvml_fake.so $B/tests/onnx_fake.so
	$(call say,link)$(CC) $(LDFLAGS) -o $@ $(filter-out %.a,$^) $(LIBALL) $(CHECK) $(COMMAND) $(LIBS)

# A tool for test_nvtx, which finds it beside itself.
$B/tests/nvtx_inject.so: tests/nvtx_inject.c $B/flags
	@mkdir -p $(@D)
	$(call say,cc)$(CC) -std=c11 $(ALL) $(CUROOT:%=-isystem %/include) $(CWARN) $(CFLAGS) -fPIC -shared -o $@ $<

# What stands in for nvJPEG in test_nvjpeg, which finds it beside itself.
$B/tests/nvjpeg_fake.so: tests/nvjpeg_fake.c tests/nvjpeg_fake.h engine/device/libraries.h engine/base/product.h $B/flags
	@mkdir -p $(@D)
	$(call say,cc)$(CC) -std=c11 $(ALL) -Wstrict-prototypes $(CFLAGS) -fPIC -shared -Wl,-soname,libnvjpeg.so.13 -o $@ $< $(shell pkg-config --libs libjpeg)

# ... for cuFFT in test_fft.
$B/tests/cufft_fake.so: tests/cufft_fake.c tests/cufft_fake.h $B/flags
	@mkdir -p $(@D)
	$(call say,cc)$(CC) -std=c11 $(ALL) -Wstrict-prototypes $(CFLAGS) -fPIC -shared -Wl,-soname,libcufft.so.12 -o $@ $< -lm

# ... for NVML in test_machine.
$B/tests/nvml_fake.so: tests/nvml_fake.c $B/flags
	@mkdir -p $(@D)
	$(call say,cc)$(CC) -std=c11 $(ALL) -Wstrict-prototypes $(CFLAGS) -fPIC -shared -o $@ $<

# ... for ONNX Runtime in test_onnx.
$B/tests/onnx_fake.so: tests/onnx_fake.c tests/onnx_fake.h stages/onnx/ort_library.h $B/flags
	@mkdir -p $(@D)
	$(call say,cc)$(CC) -std=c11 $(ALL) -Wstrict-prototypes $(CFLAGS) -fPIC -shared -o $@ $<

# ... for NCCL in tests/ranks.py, by its name.
$B/tests/nccl/libnccl.so.2: tests/nccl_fake.c $B/flags
	@mkdir -p $(@D)
	$(call say,cc)$(CC) -std=c11 $(ALL) -Wstrict-prototypes $(CFLAGS) -fPIC -shared -Wl,-soname,libnccl.so.2 -o $@ $<

# All of them, or PART of them at random; SEED and TRY, as it prints them, repeat.
PART ?= 1
torture: all $B/tests/torture/shim.so
	$(PYTHON) tests/torture/torture.py $B/gpipe $B/tests/torture/shim.so --part $(PART) $(SEED:%=--seed %) $(TRY:%=--only %)
$B/tests/torture/shim.so: tests/torture/shim.c $B/flags
	@mkdir -p $(@D)
	$(call say,cc)$(CC) -std=gnu11 $(ALL) $(CWARN) $(CFLAGS) -U_FORTIFY_SOURCE -fvisibility=default -shared -o $@ $<

# Makes a page of what tests/page.py made up.
$B/tests/page: $B/tests/page.o $B/engine/cli/page.o $B/libgpipe.a
	$(call say,link)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

# The command with one verb more, for tests/cli.sh.
$B/tests/verb: $B/tests/verb.o $B/tests/verbs.o $(filter-out %/verbs.o,$(CLI_OBJ)) $B/libgpipe.a
	$(call say,link)$(CC) $(LDFLAGS) -o $@ $^ $(COMMAND) $(LIBS)

$B/tests/gpu/run: $B/tests/gpu/suites.o $(patsubst %.c,$B/%.o,$(GPUTEST) tests/gpu/run.c $(wildcard tests/lib/*.c)) $B/libgpipe.a
	$(call say,link)$(CC) $(LDFLAGS) -o $@ $^ $(CHECK) $(LIBS)

# What tests need: suites alone, the quick ones, all. python3-pil brings libtiff, which has another name in each release.
NEED_SUITES := check locales
NEED_QUICK  := $(NEED_SUITES) libsndfile1 libblosc1 liblz4-1 libzstd1 libzmq5 python3-jsonschema python3-pil python3-yaml python3-tifffile python3-soundfile ffmpeg
NEED_ALL    := $(NEED_QUICK) valgrind neovim zsh fish libzmq3-dev python3-zmq python3-zarr python3-scipy python3-cffi python3-venv python3-h5py libhdf5-dev libopenmpi-dev openmpi-bin $(shell . /etc/os-release 2>/dev/null; [ "$$ID" = debian ] && echo chromium)
check check-all:
	$(if $(filter check-all,$@),$(if $(T)$(SAN),$(error check-all takes no T and no SAN: make check T=... SAN=...)))
	@$(if $(shell command -v dpkg),$(call find_missing,$(NEED) $(if $(T),$(NEED_SUITES),$(if $(filter check,$@),$(NEED_QUICK),$(NEED_ALL)))); \
	  [ -z "$$missing" ] || { echo "the tests need:$$missing; 'make deps-tests' installs them; 'make $@ NEED_QUICK= NEED_ALL=' goes on without" >&2; exit 1; })
	+@$(again) $@-built

# For tests of `onnx`: the system's ONNX Runtime, or else that of pip's package. Without either they say so.
ORT := $(or $(GPIPE_ONNXRUNTIME),$(wildcard $(CURDIR)/build/onnxruntime/onnxruntime/capi/libonnxruntime.so.*))
check-built check-all-built: export GPIPE_ONNXRUNTIME := $(ORT)
# Plug-ins of whoever tests are not looked for.
check-built check-all-built: export GPIPE_PLUGINS :=
check-built check-all-built: export XDG_DATA_HOME := $(abspath $B)/none
deps-tests: NEED += $(NEED_ALL) python3-pip
deps-tests: deps onnxruntime corpora
corpora: deps
	@$(PYTHON) tests/corpora.py --fetch
onnxruntime:
	@[ -n "$(ORT)" ] || /sbin/ldconfig -p | grep -q 'libonnxruntime\.so' || { \
	  mkdir -p build/onnxruntime && cd build/onnxruntime && echo "downloading: onnxruntime, by pip" && \
	  $(PYTHON) -m pip download -q --no-deps --only-binary=:all: --python-version 3.12 --disable-pip-version-check --timeout 20 onnxruntime==1.23.2 && \
	  $(PYTHON) -m zipfile -e onnxruntime-*.whl . && rm onnxruntime-*.whl; } || echo "no ONNX Runtime is to be had: models are not tested with it"
# Side by side, the longest first: the suites in parts, which sleep at times, and what uses the command.
PARTS := $(if $(T),$(if $(word 8,$(T)),1 2 3 4,$(if $(word 2,$(T)),1 2,1)),1 2 3 4)
QUICK := check-cli $(PARTS:%=units-%) $(addprefix check-,pictures video replay recordings stores schema lsp completion includes)
ALL_TOO := $(addprefix check-,effort plugins collectives ranks_live live view ranks_report ends tune page service udp network live_set reuse record python model corpora)
check-built: all $B/tests/run$S $(if $(T),,$B/tests/fuzz/replay)
	+@$(again) -k $(if $(T),$(PARTS:%=units-%),$(QUICK))

# The last ones have the machine for themselves.
INJECT := $(if $(filter 1,$(CUDA)),$B/tests/gpu/inject)
TORTURE := $(if $(filter 1,$(STATIC)),,$B/tests/torture/shim.so)
check-all-built: export GPIPE_TESTS := all
check-all-built: all $B/tests/run $B/tests/fuzz/replay $B/tests/nccl/libnccl.so.2 $B/tests/gpu/run $B/tests/page $(INJECT) $(TORTURE)
	+@$(again) -k check-ranks $(QUICK) $(ALL_TOO)
	GPIPE=$(abspath $B/gpipe) $(PYTHON) tests/verdict.py
	$(if $(DRY),@:,MAKE="$(MAKE) --no-print-directory" CC="$(CC)") tests/install.sh
	GPIPE=$(abspath $B/gpipe) $B/tests/gpu/run
	$(INJECT)
	$(TORTURE:%=$(PYTHON) tests/torture/torture.py $B/gpipe % --part 0.1)
units-%: FORCE
	GPIPE=$(abspath $B/gpipe) $B/tests/run$S $*/$(words $(PARTS))
# How work grows with size: Valgrind counts instructions.
check-effort: $B/tests/run FORCE
	rm -f $B/tests/effort.*
	GPIPE=$(abspath $B/gpipe) CK_FORK=no CK_RUN_CASE=effort GPIPE_EFFORT=$B/tests/effort valgrind -q --tool=callgrind --callgrind-out-file=$B/tests/effort $B/tests/run
	test -e $B/tests/effort.1       # else nothing was counted
check-replay: FORCE
	$B/tests/fuzz/replay tests/fuzz/corpus
check-cli: $B/tests/verb FORCE
	GPIPE=$(abspath $B/gpipe) tests/cli.sh
$(patsubst %,check-%,plugins live view ends pictures recordings stores schema lsp completion video tune ranks ranks_live ranks_report collectives service udp network live_set reuse record model corpora): \
  check-%: FORCE
	$(PYTHON) tests/$*.py $B/gpipe
check-python: wheel-built
	$(PYTHON) tests/python.py $B/gpipe build/wheel
check-page: FORCE
	$(PYTHON) tests/page.py $B/tests/page $B/gpipe
check-includes: FORCE
	$(PYTHON) tests/includes.py

# The harnesses of tests/fuzz, with stored inputs (replay) and under libFuzzer (run): one
# program has them all. codec.sh gets libdeflate's and libjpeg's source, so that they are instrumented too.
FUZZ_OBJ := $(patsubst %.c,$B/%.o,$(filter-out %/libfuzzer.c %/replay.c,$(wildcard tests/fuzz/*.c)) \
              tests/onnx_fake.c) $(filter-out %/main.o,$(CLI_OBJ))
$B/tests/fuzz/replay: $B/tests/fuzz/replay.o $(FUZZ_OBJ) $B/libgpipe.a
	$(call say,link)$(CC) $(LDFLAGS) -Wl,--wrap=gp_slurp,--wrap=gp_dl_open -o $@ $^ $(COMMAND) $(LIBS) -lz
$B/tests/fuzz/run: $B/tests/fuzz/libfuzzer.o $(FUZZ_OBJ) $B/libgpipe.a $B/libdeflate.a $B/libjpeg.a
	$(call say,link)$(CC) $(LDFLAGS) -fsanitize=fuzzer -Wl,--wrap=gp_slurp,--wrap=gp_dl_open -o $@ $^ $(COMMAND) $(LIBS) -lz
$B/libdeflate.a $B/libjpeg.a: tests/fuzz/codec.sh
	tests/fuzz/codec.sh $(basename $(@F)) $@ $(CC) -O1 -g -fsanitize=fuzzer-no-link,$(SAN)

SECONDS ?= 20
FUZZ    ?=
clang   := CC="$(if $(findstring clang,$(CC)),$(CC),clang)" \
           CXX="$(if $(findstring clang,$(CXX)),$(CXX),clang++)" CUDA=0
fuzz: NEED += clang llvm zlib1g-dev dpkg-dev
fuzz: deps
	+@$(again) $(clang) B=build/fuzz SAN=address,undefined \
	  CFLAGS="-O1 -g -fsanitize=fuzzer-no-link" build/fuzz/gpipe build/fuzz/tests/fuzz/run
	+@$(again) $(clang) B=build/fuzz-coverage LDFLAGS="$(LDFLAGS) -fprofile-instr-generate" \
	  CFLAGS="-O1 -g -fprofile-instr-generate -fcoverage-mapping" build/fuzz-coverage/tests/fuzz/replay
	$(PYTHON) tests/fuzz/run.py --seconds $(SECONDS) --seed $(or $(SEED),0) $(FUZZ)

# The package for Python: the library with the shared ones that it needs beside it, as static ones are for programs
# only; the command needs none.
wheel: NEED += python3-cffi
wheel: deps
	+@$(again) wheel-built
wheel-built: $B/wheel/gpipe $B/wheel/libgpipe.so
	$(PYTHON) engine/python/wheel.py $(VERSION) "$(CC)" $B/wheel/libgpipe.so $B/wheel/gpipe build/wheel
$B/wheel/gpipe: $(CLI_OBJ) $B/libgpipe.a
	@mkdir -p $(@D)
	$(call say,link)$(CC) $(LDFLAGS) -o $@ $(CLI_OBJ) $(LIBALL) $(call static,$(PKGS) $(PKGS_COMMAND)) -static-libgcc $(SYSTEM)
$B/wheel/libgpipe.so: $(OBJ)
	@mkdir -p $(@D)
	$(call say,link)$(CC) $(LDFLAGS) -shared -Wl,-soname,libgpipe.so.$(VERSION) -Wl,--exclude-libs,ALL -Wl,-rpath,'$$ORIGIN' -o $@ $^ $(shell pkg-config --libs $(PKGS)) $(SYSTEM)

demo: deps
	+@$(again) all
	./gpipe run pipelines/edges.yaml
	@echo "demo: the pictures are in pipelines/out/edges/"

# Has stubs before all functions of CUDA that the library calls.
$B/inject_calls.h: $B/libgpipe.a
	@nm $< | sed -n 's/^ *U \(cuda[A-Za-z]*\)$$/\1/p' | sort -u | awk '{ print "CALL(" NR - 1 ", " $$1 ")" }' > $@
$B/tests/gpu/inject.o: $B/inject_calls.h
$B/tests/gpu/inject: $(patsubst %,$B/tests/%.o,gpu/inject lib/pipe lib/suite lib/every) $B/libgpipe.a
	$(call say,link)$(CC) $(LDFLAGS) -Wl,--wrap=gp_dl_open $$(sed -n 's/.*, \(.*\))/-Wl,--wrap=\1/p' $B/inject_calls.h) -o $@ $^ $(CHECK) $(LIBS)

gpu-tests: all $B/tests/gpu/run $(if $(filter 1,$(CUDA)),$B/tests/gpu/inject)

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' $(firstword $(MAKEFILE_LIST))

# What gpipe is measured beside, as far as it can be built here.
BENCH   ?=
PEERS   := host $(if $(filter 1,$(CUDA)),hand lone alone several heat decode $(if $(wildcard $(CUROOT)/include/cufft.h),fft) $(if $(wildcard $(CUROOT)/include/cublasLt.h),matmul) $(if $(wildcard $(CUROOT)/include/nccl.h /usr/include/nccl.h),collective)) $(shell pkg-config --exists tbb 2>/dev/null && echo tbb)
bench: deps
	+@$(again) bench-programs
	python3 tests/bench/bench.py --gpipe $B/gpipe $(BENCH)
bench-programs: all $(PEERS:%=$B/bench/%)
$B/bench/host: $B/tests/bench/host.o $B/libgpipe.a
	@mkdir -p $(@D)
	$(call say,link)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)
$B/bench/tbb: tests/bench/tbb.cpp $B/flags
	@mkdir -p $(@D)
	$(call say,c++)$(CXX) -std=c++17 $(WARN) $(CFLAGS) -o $@ $< $(shell pkg-config --cflags --libs tbb)
$B/bench/%: tests/bench/%.cu tests/bench/hand.h tests/bench/axpy.cu tests/bench/heat_step.cu tests/bench/two_gpus.cu
	@mkdir -p $(@D)
	$(call say,nvcc)$(NVCC) -std=c++17 -O3 -arch=all-major \
	  -Xcompiler -Wall,-Wextra,-static-libstdc++,-static-libgcc -o $@ $< $(if $(filter fft,$(@F)),-lcufft) $(if $(filter matmul,$*),-lcublasLt) $(if $(filter collective,$*),-lnccl)

# The one that Debian's packages are for.
PYTHON := $(or $(wildcard /usr/bin/python3),python3)
NEED_LINKED := libyaml-dev $(if $(filter luajit,$(LUA)),libluajit-5.1-dev,liblua5.4-dev) libdeflate-dev zlib1g-dev \
        $(shell . /etc/os-release 2>/dev/null; [ "$$ID" = ubuntu ] && echo libjpeg-turbo8-dev || echo libjpeg62-turbo-dev)
NEED := pkg-config $(NEED_LINKED) libavformat-dev libjansson-dev libmicrohttpd-dev graphviz check g++ python3
find_missing = missing=; for p in $1; do dpkg -s $$p >/dev/null 2>&1 || missing="$$missing $$p"; done
deps:
	@$(call find_missing,$(NEED)); if [ -n "$$missing" ]; then \
	  command -v apt-get >/dev/null || { echo "please install:$$missing"; exit 1; }; \
	  sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
	  echo "installing:$$missing"; \
	  $$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq $$missing >/dev/null; fi

deps-bench: NEED += libtbb-dev gstreamer1.0-tools gstreamer1.0-plugins-base
deps-bench: deps

to := $(DESTDIR)$(PREFIX)
install: all $(if $(filter 1,$(STATIC)),,$B/libgpipe.so) $B/gpipe.pc
	install -d $(to)/bin $(to)/include/gpipe $(to)/lib/pkgconfig $(to)/share/gpipe/lua $(to)/share/man/man1
	install -m755 $B/gpipe $(to)/bin
	$B/gpipe help --man > $(to)/share/man/man1/gpipe.1
	install -Dm644 engine/cli/completion.bash $(to)/share/bash-completion/completions/gpipe
	install -Dm644 engine/cli/completion.zsh $(to)/share/zsh/site-functions/_gpipe
	install -Dm644 engine/cli/completion.fish $(to)/share/fish/vendor_completions.d/gpipe.fish
	install -m644 engine/include/gpipe/*.h $(to)/include/gpipe
	install -m644 $B/libgpipe.a $(to)/lib
	$(if $(filter 1,$(STATIC)),,install -m755 $B/libgpipe.so $(to)/lib/libgpipe.so.$(VERSION))
	$(if $(filter 1,$(STATIC)),,ln -sf libgpipe.so.$(VERSION) $(to)/lib/libgpipe.so)
	$(if $(MPI),install -D -m755 -t $(to)/lib/gpipe $(MPI))
	install -m644 $B/gpipe.pc $(to)/lib/pkgconfig
	install -m644 $(LUAMODS) $(to)/share/gpipe/lua

# debhelper works in build/deb/gpipe, which has of the source tree what packages are made by.
deb: NEED += debhelper libopenmpi-dev
deb: deps
	rm -rf build/deb
	+@$(again) install PREFIX=/usr DESTDIR=$(CURDIR)/build/deb/root
	mkdir -p build/deb/gpipe/debian
	cp engine/packages/rules engine/packages/*.install build/deb/gpipe/debian
	sed "s/LINKED/$(subst $(space),$(comma) ,$(NEED_LINKED))/; s/AVFORMAT/libavformat$$(pkg-config --modversion libavformat | sed 's/[.].*//')/" engine/packages/control > build/deb/gpipe/debian/control
	cp LICENSE build/deb/gpipe/debian/copyright
	printf 'gpipe ($(VERSION)) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- %s  %s\n' \
	  "$$(sed -n 's/^Maintainer: //p' engine/packages/control)" "$$(date -R -r CHANGELOG.md)" > build/deb/gpipe/debian/changelog
	cd build/deb/gpipe && env -u MAKEFLAGS dh binary

# What is committed; of a tree without git, all but what was built.
DIST := gpipe-$(VERSION)
dist:
	@mkdir -p build
	if git rev-parse HEAD >/dev/null 2>&1; then git archive --prefix=$(DIST)/ -o build/$(DIST).tar.gz HEAD; \
	else tar -czf build/$(DIST).tar.gz --exclude='./build*' --exclude=./gpipe --transform='s,^\.,$(DIST),' .; fi

check-packages: NEED += debootstrap lintian
check-packages: deb dist deps
	tests/packages.sh build/$(DIST).tar.gz build/deb/*.deb

# Sphinx with all that it needs, from the index of Python packages.
site:
	[ -d build/sphinx ] || $(PYTHON) -m pip install -q --disable-pip-version-check --no-warn-conflicts --root-user-action=ignore \
	  --target build/sphinx sphinx==8.1.3 myst-parser==4.0.1 furo==2024.8.6
	PYTHONPATH=build/sphinx $(PYTHON) engine/packages/site.py build/site

clean:
	rm -rf build gpipe

-include $(shell find $B -name '*.d' 2>/dev/null)
.PHONY: all corpora bench bench-programs check check-all check-all-built check-built demo deps deps-bench deps-tests fuzz gpu-tests help install onnxruntime torture check-packages deb dist site wheel wheel-built clean FORCE
.SECONDARY:
