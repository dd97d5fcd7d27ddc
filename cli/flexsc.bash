# SPDX-License-Identifier: MIT
# bash completion for flexsc(1)

# Which word is the program of flexsc run? Sets `at` to its number, or to that of
# the word being typed if it is still an option.
_flexsc_program()
{
	for ((at = 2; at < COMP_CWORD; at++)); do
		case ${COMP_WORDS[at]} in
		--) ((at++)); return ;;
		-c|-e|-s|--cores|--engine|--stats)
			[ "${COMP_WORDS[at+1]}" = = ] && ((at++))
			((at++)) ;;
		-*) ;;
		*) return ;;
		esac
	done
}

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
	local at=0
	[ "${COMP_WORDS[1]}" = run ] && _flexsc_program
	if [ "$COMP_CWORD" -eq 1 ]; then
		words='doctor run stat top trace compare bench --help --version'
	else
		case ${COMP_WORDS[1]}:$prev in
		run:*)
			if [ "$at" -gt "$COMP_CWORD" ]; then
				case $prev in
				-e|--engine)
					words='auto kmod kcore hybrid uthread poll uring sync' ;;
				-s|--stats)
					compopt -o filenames 2>/dev/null
					mapfile -t COMPREPLY < <(compgen -f -- "$cur")
					return ;;
				esac
			elif [ "$at" -lt "$COMP_CWORD" ]; then
				# The program's own words: as after sudo, if it can be done.
				if declare -F _command_offset >/dev/null; then
					_command_offset "$at"
					return
				fi
				compopt -o filenames 2>/dev/null
				mapfile -t COMPREPLY < <(compgen -f -- "$cur")
				return
			elif [[ $cur == -* ]]; then
				words='--cores --engine --no-inherit --quiet --stats --verbose --help'
			else
				mapfile -t COMPREPLY < <(compgen -c -- "$cur" | sort -u)
				return
			fi ;;
		bench:--engine|bench:-e)
			words='kmod kcore hybrid uthread poll uring sync' ;;
		bench:--plot)
			compopt -o filenames 2>/dev/null
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
			return ;;
		bench:--runs|bench:-n|bench:--case)
			COMPREPLY=()
			return ;;
		bench:*)
			words="$("${COMP_WORDS[0]}" bench --list 2>/dev/null | cut -d' ' -f1)
				--list --json --runs --engine --case --plot --quick --server
				--help" ;;
		doctor:*)
			words='--json --help' ;;
		stat:-c|stat:--count|stat:-i|stat:--interval|top:-i|top:--interval)
			COMPREPLY=()
			return ;;
		stat:*)
			words='--count --interval --json --prometheus --help'
			[[ $cur == -* ]] || words=$(cd /proc && echo [0-9]*) ;;
		compare:-e|compare:--engine)
			words='auto kmod kcore hybrid uthread poll uring sync' ;;
		compare:*)
			if [[ $cur != -* ]]; then
				mapfile -t COMPREPLY < <(compgen -c -- "$cur" | sort -u)
				return
			fi
			words='--cores --engine --json --load --plot --ready --ready-cmd
				--runs --wait --help' ;;
		trace:-o|trace:--output)
			compopt -o filenames 2>/dev/null
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
			return ;;
		trace:-p|trace:--attach)
			words=$(cd /proc && echo [0-9]*) ;;
		trace:-e|trace:--expr)
			words='trace=%desc trace=%file trace=%ipc trace=%memory trace=%network
				trace=%process trace=%signal status=failed status=successful' ;;
		trace:-s|trace:--string-limit|trace:-a|trace:--columns)
			COMPREPLY=()
			return ;;
		trace:*)
			if [[ $cur != -* ]]; then
				mapfile -t COMPREPLY < <(compgen -c -- "$cur" | sort -u)
				return
			fi
			words='--absolute-timestamps --attach --columns --expr --failed-only
				--follow-forks --output --quiet --relative-timestamps
				--string-limit --successful-only --summary --summary-only
				--syscall-times --help' ;;
		top:*)
			words='--interval --help'
			[[ $cur == -* ]] || words=$(cd /proc && echo [0-9]*) ;;
		esac
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -F _flexsc flexsc
