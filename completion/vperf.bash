# SPDX-License-Identifier: GPL-2.0-or-later
# bash completion for vperf: verbs and options are those that vperf itself prints.
_vperf() {
	local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]}
	local vperf=${COMP_WORDS[0]}

	if [ "$COMP_CWORD" -eq 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$("$vperf" --help 2>/dev/null |
			sed -n '/^Verbs:/,$s/^  \([a-z]*\) .*/\1/p') --help --version" -- "$word")
	elif [ "${word:0:1}" = - ]; then
		mapfile -t COMPREPLY < <(compgen -W "$("$vperf" "$verb" --help 2>/dev/null |
			sed -n 's/^ *\(-[A-Za-z], \)\{0,1\}\(--[a-z0-9-]*\).*/\2/p')" -- "$word")
	elif [ "$verb" = export ] && [ "$COMP_CWORD" -eq 2 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$("$vperf" export --list 2>/dev/null |
			sed 's/ .*//')" -- "$word")
	else
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
	fi
}
complete -F _vperf vperf
