# SPDX-License-Identifier: GPL-2.0-or-later
# bash completion for vperf-bench: verbs and options are those that it prints itself.
_vperf_bench() {
	local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} bench=${COMP_WORDS[0]}

	if [ "$COMP_CWORD" -eq 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$("$bench" --help 2>/dev/null |
			sed -n 's/^    \([a-z]\{1,\}\) .*/\1/p') --help --version" -- "$word")
	elif [ "${word:0:1}" = - ]; then
		mapfile -t COMPREPLY < <(compgen -W "$("$bench" "$verb" --help 2>/dev/null |
			sed -n 's/^ *\(-[A-Za-z][A-Z, ]*\)\{0,1\}\(--[a-z-]*\).*/\2/p')" -- "$word")
	elif [ "${COMP_WORDS[COMP_CWORD - 1]}" = --format ]; then
		mapfile -t COMPREPLY < <(compgen -W "text csv json html" -- "$word")
	else
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
	fi
}
complete -F _vperf_bench vperf-bench
