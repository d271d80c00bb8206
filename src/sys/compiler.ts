// The runtime's compiler. We are built to be reluctant with it (--compile-jit-policy): most commands are over before compiled code
// has paid for itself.

/** For work of more than some twenty milliseconds: code that runs often is compiled soon from now on. */
export const compileSoon = (): void => Bun.unsafe.setJITPolicy(1);
