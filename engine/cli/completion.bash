# bash completion for gpipe: gpipe itself says what may come next.
_gpipe()
{
    local line=${COMP_LINE:0:COMP_POINT} words cur before
    read -a words <<< "$line"          # a blank behind a backslash parts no words
    [[ $line == *[[:space:]] ]] && words+=("")
    cur=${words[-1]}
    mapfile -t COMPREPLY < <("$1" completion bash -- "${words[@]:1}" 2> /dev/null)
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=./] ]] && compopt -o nospace
    # For bash what is behind = and : is a word of its own.
    before=${cur%"${cur##*[=:]}"}
    COMPREPLY=("${COMPREPLY[@]#"$before"}")
    if [[ -e ${COMPREPLY[0]-} ]]; then
        compopt -o filenames           # which quotes them
    else
        for cur in "${!COMPREPLY[@]}"; do
            printf -v "COMPREPLY[$cur]" %q "${COMPREPLY[cur]}"
        done
    fi
}
complete -o default -F _gpipe gpipe
