/**
 * CPU time of this process. Invariant: a limit on the amount of work is compared with CPU time, never with wall-clock
 * time, which other programs affect.
 */

/** Milliseconds of CPU time that the process uses until the work is done. */
export async function cpuTime(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
