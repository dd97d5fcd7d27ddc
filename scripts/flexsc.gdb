# SPDX-License-Identifier: MIT
#
# For gdb, with debugging information of the library:
#
#	source scripts/flexsc.gdb
#	flexsc-bt TASK	the stack of a user thread that is parked; TASK is its
#			struct fx_task *, or the struct fx_thread * around it
#
# In a running process only: the registers of the selected thread are changed
# for a moment. "thread apply all bt" shows user threads that run, on their
# carriers, and those at home; the own kernel threads of all others wait in
# fx_arch_lend().

define flexsc-bt
  set $flexsc_sp = $rsp
  set $flexsc_pc = $rip
  set $rsp = (unsigned long)((struct fx_task *)$arg0)->context.sp
  set $rip = (unsigned long)&fx_arch_parked
  bt
  set $rsp = $flexsc_sp
  set $rip = $flexsc_pc
end
document flexsc-bt
Print the stack of a user thread of FlexSC-Threads that is parked.
end
