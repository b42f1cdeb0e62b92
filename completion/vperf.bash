# SPDX-License-Identifier: GPL-2.0-or-later
# bash completion for vperf: commands and options are those that vperf itself prints, VMs those of the
# recording.

# The recording on the command line, or the usual one.
_vperf_recording() {
	local word

	for word in "${COMP_WORDS[@]:2}"; do
		[ -f "$word/recording" ] && echo "$word" && return
	done
	[ "${COMP_WORDS[1]}" = stat ] && echo vperf.stat || echo vperf.data
}

# Names of the events that the recording has.
_vperf_recorded_events() {
	sed -n 's/^event //p' "$(_vperf_recording)/host.events" 2>/dev/null
}

# Values of the option `$1` of the command `$2`, a line each.
_vperf_values() {
	local vperf=${COMP_WORDS[0]}

	case $1 in
	--vm)
		awk '$1 == "vm" { print $NF }' "$(_vperf_recording)/vms" 2>/dev/null
		;;
	--view) printf '%s\n' unified host guest ;;
	--by)
		case $2 in
		top) printf '%s\n' vcpu function process ;;
		*) printf '%s\n' reason function process address ;;
		esac
		;;
	--track | --lane) printf '%s\n' pcpu vcpu thread ;;
	--per) printf '%s\n' vcpu task pcpu ;;
	--sort)
		case $2 in
		account) printf '%s\n' vm vcpu wall_ns guest kernel poll vmm halted preempted exits_per_s ;;
		steal) printf '%s\n' vm vcpu kind thief preempted_ns waking_ns ns percent count ;;
		exits) printf '%s\n' vm reason count work_ns kernel_ns asleep_ns steal_ns total_ns mean_ns p99_ns max_ns ;;
		*) printf '%s\n' sym dso comm pid vm vcpu ;;
		esac
		;;
	--account) printf '%s\n' exact sampled states ;;
	--clock) printf '%s\n' host offset time rfc3339 ;;
	--table)
		case $2 in
		critical) printf '%s\n' blame chain ;;
		*) printf '%s\n' vcpus threads waits worst guests wakeups worst-wakeups ;;
		esac
		;;
	--limit) printf '%s\n' 10 20 50 100 ;;
	--format)
		case $2 in
		script | timeline) printf '%s\n' text jsonl csv ;;
		check | info | diagnose | store | lend | selftest) printf '%s\n' text json ;;
		model) printf '%s\n' text json csv dot ;;
		*) printf '%s\n' text json csv ;;
		esac
		;;
	-r | --recipe | --stat)
		find /usr/share/vperf/recipes /usr/local/share/vperf/recipes -type f -printf '%f\n' \
			2>/dev/null
		;;
	-e | --event)
		case $2 in
		script) _vperf_recorded_events ;;
		*) "$vperf" stat --list 2>/dev/null | sed 's/ .*//' ;;
		esac
		;;
	--trace) printf '%s\n' sched kvm irq guest block net syscalls timer ;;
	--call-graph)
		case $2 in
		record) printf '%s\n' dwarf fp ;;
		*) printf '%s\n' graph none caller callee ;;
		esac
		;;
	*) return 1 ;;
	esac
}

_vperf() {
	local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local vperf=${COMP_WORDS[0]} sub values

	[ "$verb" = stat ] && [ "${COMP_WORDS[2]}" = report ] && sub=report
	[ "$verb" = model ] && [ "$COMP_CWORD" -gt 2 ] && sub=${COMP_WORDS[2]}
	if [ "$COMP_CWORD" -eq 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$("$vperf" --help 2>/dev/null |
			sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p') help --help --version" -- "$word")
	elif [ "${word:0:1}" = - ]; then
		mapfile -t COMPREPLY < <(compgen -W "$("$vperf" "$verb" $sub --help 2>/dev/null |
			sed -n 's/^ *\(-[A-Za-z], \)\{0,1\}\(--[a-z0-9-]*\).*/\2/p')" -- "$word")
	elif [ "$before" = = ]; then
		values=$(_vperf_values "${COMP_WORDS[COMP_CWORD - 2]}" "$verb") &&
			mapfile -t COMPREPLY < <(compgen -W "$values" -- "$word")
	elif values=$(_vperf_values "$before" "$verb"); then
		mapfile -t COMPREPLY < <(compgen -W "$values" -- "$word")
	elif [ "$verb" = help ] && [ "$COMP_CWORD" -eq 2 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$("$vperf" --help 2>/dev/null |
			sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p')" -- "$word")
	elif [ "$verb" = export ] && [ "$COMP_CWORD" -eq 2 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$("$vperf" export --list 2>/dev/null |
			sed 's/ .*//')" -- "$word")
	elif [ "$verb" = model ] && [ "$COMP_CWORD" -eq 2 ]; then
		mapfile -t COMPREPLY < <(compgen -W "tree check compare linear" -- "$word")
	else
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
	fi
}
complete -F _vperf vperf
