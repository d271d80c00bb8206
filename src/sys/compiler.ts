// The runtime's compiler. The binary is built to compile late (--compile-jit-policy), because most commands end before
// compiled code pays off. Work that takes more than about 20 ms calls this function.
export const compileSoon = (): void => Bun.unsafe.setJITPolicy(1);
