# fish completion for gpipe: gpipe itself says what may come next.
function __gpipe_next
    set -l words (commandline -opc) (commandline -ct)
    set -l found ($words[1] completion fish -- $words[2..-1] 2> /dev/null)
    test (count $found) -gt 0; and printf '%s\n' $found; or __fish_complete_path (commandline -ct)
end
complete -c gpipe -f -a '(__gpipe_next)'
