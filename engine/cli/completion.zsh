#compdef gpipe
# zsh completion for gpipe: gpipe itself says what may come next.
_gpipe()
{
    local line word
    local -a whole open whole_help open_help
    for line in "${(@f)$("$words[1]" completion zsh -- "${(@Q)words[2,CURRENT]}" 2> /dev/null)}"; do
        word=${line%%$'\t'*}
        if [[ $word == *[=./] ]]; then
            open+=("$word") open_help+=("${line/$'\t'/  }")
        elif [[ -n $word ]]; then
            whole+=("$word") whole_help+=("${line/$'\t'/  }")
        fi
    done
    (( $#whole + $#open )) || { _files; return; }
    compadd -l -d whole_help -a whole
    compadd -l -S '' -d open_help -a open
}
if [[ $funcstack[1] == _gpipe ]]; then _gpipe "$@"; else compdef _gpipe gpipe; fi
