#!/usr/bin/env python3
"""site.py TO: all pages of Markdown as a site in TO/pages, by Sphinx and MyST, which refuse links that lead nowhere.

Pages keep their places; what they link to, a picture or a pipeline, comes with them.
"""
import os, re, shutil, subprocess, sys

os.chdir(os.path.join(os.path.dirname(__file__), "../.."))
to = sys.argv[1]
shutil.rmtree(to, ignore_errors=True)
pages = sorted(os.path.normpath(os.path.join(folder, name)) for top in (".", "engine", "examples", "stages", "tests")
               for folder, _, names in os.walk(top) for name in names
               if name.endswith(".md") and (top != "." or folder == "."))
topics = re.findall(r"^\| \[\w+\]\((\S+\.md)\)", open("README.md").read(), re.M)
examples = [page for page in pages if page.startswith("examples/")]
parts = {"Topics": topics, "Examples": examples,
         "Development": [page for page in pages if page not in ["README.md"] + topics + examples]}
for page in pages:
    def lead(link):
        """A link, if to a folder then to its page; what is no page is copied."""
        path = os.path.normpath(os.path.join(os.path.dirname(page), link[1]))
        if os.path.isdir(path):
            return f"]({os.path.join(link[1], 'README.md')})"
        if os.path.isfile(path) and path not in pages:
            os.makedirs(os.path.dirname(f"{to}/from/{path}"), exist_ok=True)
            shutil.copy(path, f"{to}/from/{path}")
        return link[0]

    text = re.sub(r"\]\(([^)#:\s]+)\)", lead, open(page).read())
    if page == "README.md":
        text += "".join(f"\n```{{toctree}}\n:hidden:\n:caption: {name}\n\n" + "\n".join(of) + "\n```\n"
                        for name, of in parts.items())
    os.makedirs(os.path.dirname(f"{to}/from/{page}"), exist_ok=True)
    open(f"{to}/from/{page}", "w").write(text)

settings = dict(project="gpipe", root_doc="README", extensions="myst_parser", html_theme="furo", html_title="gpipe",
                myst_heading_anchors="4", html_copy_source="0", html_show_copyright="0")
done = subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-C", "-d", f"{to}/trees"]
                      + [word for name, value in settings.items() for word in ("-D", f"{name}={value}")]
                      + [f"{to}/from", f"{to}/pages"])
if not done.returncode:
    shutil.copy(f"{to}/pages/README.html", f"{to}/pages/index.html")
sys.exit(done.returncode)
