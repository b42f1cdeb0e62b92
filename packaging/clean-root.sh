#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Minimal systems of a distribution to try packages in, made by mmdebstrap. For scripts of this directory:
#   . packaging/clean-root.sh; make_root trixie "$root" || exit 77; inside "$root" COMMAND...
# VPERF_MIRROR: apt's line for a release that is not of Debian, such as "deb [trusted=yes] http://MIRROR noble main".

# Prints the packages' sources of a release: where this machine, if it is a Debian 12, has its own from.
root_mirrors() {
	local mirrors
	if [ -n "${VPERF_MIRROR:-}" ]; then
		echo "$VPERF_MIRROR"
		return
	fi
	# shellcheck disable=SC2016 # apt-get expands it
	mirrors=$(apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' \
		'Created-By: Packages' 'Origin: Debian' | grep -E ' bookworm(-security|-updates)? main$' | sort -u)
	echo "${mirrors//bookworm/$1}"
}

# make_root RELEASE ROOT [OPTION OF MMDEBSTRAP]...: false, with a message, if such a system cannot be made here.
make_root() {
	local release=$1 root=$2 mirrors log
	shift 2
	if [ "$(id -u)" != 0 ] || ! command -v mmdebstrap >/dev/null; then
		echo "no minimal $release: root and mmdebstrap are needed"
		return 1
	fi
	log=$(mktemp)
	mapfile -t mirrors < <(root_mirrors "$release")
	mmdebstrap --quiet --variant=minbase --mode=root --skip=cleanup/apt/lists "$@" "$release" "$root" "${mirrors[@]}" \
		>"$log" 2>&1 || {
		tail -n 10 "$log"
		echo "no minimal $release: mmdebstrap cannot make one"
		rm -f "$log"
		return 1
	}
	rm -f "$log"
}

# inside ROOT COMMAND...: runs it in there, with its own processes and nothing of this shell's environment.
inside() {
	local root=$1
	shift
	unshare --mount --pid --fork --mount-proc="$root/proc" chroot "$root" env -i \
		PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"
}

# remove_root DIRECTORY: with the roots in it.
remove_root() {
	local mounted
	while read -r mounted; do
		umount -l "$mounted" 2>/dev/null || true
	done < <(sed -n "s|^[^ ]* \($1/[^ ]*\) .*|\1|p" /proc/mounts | sort -r)
	rm -rf --one-file-system "$1"
}

fail() {
	echo "${0##*/}: $1"
	exit 1
}
