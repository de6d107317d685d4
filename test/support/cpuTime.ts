/**
 * What work costs in time of this process alone. Rule: a bar on how much work something may be is held against this, and
 * never against the clock on the wall, which other programs move.
 */

/** Milliseconds of CPU that the process takes until the work is done. */
export async function cpuTime(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
