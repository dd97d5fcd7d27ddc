/* SPDX-License-Identifier: MIT */
/* The subcommands: each gets its own name as argv[0], returns the status. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

int bench_main(int argc, char **argv); /* bench/bench.c */
int compare_main(int argc, char **argv);
int doctor_main(int argc, char **argv);
int run_main(int argc, char **argv);
int stat_main(int argc, char **argv);
int top_main(int argc, char **argv);
int trace_main(int argc, char **argv);

#endif /* CLI_COMMANDS_H */
