# SPDX-License-Identifier: GPL-2.0-or-later
# bash completion for vperfd: options are those that vperfd itself prints.
_vperfd() {
	local word=${COMP_WORDS[COMP_CWORD]}

	if [ "${word:0:1}" = - ]; then
		mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[0]}" --help 2>/dev/null |
			sed -n 's/^ *\(-[A-Za-z], \)\{0,1\}\(--[a-z0-9-]*\).*/\2/p')" -- "$word")
	else
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
	fi
}
complete -F _vperfd vperfd
