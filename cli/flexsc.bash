# SPDX-License-Identifier: MIT
# bash completion for flexsc(1)
_flexsc()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
	local words=

	# --engine=po is three words where = breaks words.
	if [ "$cur" = = ]; then
		cur=
	elif [ "$prev" = = ] && [ "$COMP_CWORD" -ge 2 ]; then
		prev=${COMP_WORDS[COMP_CWORD-2]}
	fi
	if [ "$COMP_CWORD" -eq 1 ]; then
		words='doctor bench --help --version'
	else
		case ${COMP_WORDS[1]}:$prev in
		bench:--engine|bench:-e)
			words='hybrid uthread poll uring sync' ;;
		bench:--plot)
			compopt -o filenames 2>/dev/null
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
			return ;;
		bench:--runs|bench:-n)
			COMPREPLY=()
			return ;;
		bench:*)
			words="$("${COMP_WORDS[0]}" bench --list 2>/dev/null | cut -d' ' -f1)
				--list --json --runs --engine --plot --quick
				--help" ;;
		doctor:*)
			words='--json --help' ;;
		esac
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -F _flexsc flexsc
