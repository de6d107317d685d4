/**
 * Masks protected places that do not exist, so that a sandboxed command cannot create them. Rule: an empty directory
 * that nobody can write to (a mask) occupies the place while commands run, and is removed after the last one. Masks
 * have a special mode. Therefore masks left by a crash are recognised, and no other directory is ever removed.
 */
import { constants } from 'node:fs';
import { access, chmod, lstat, mkdir, readdir, readFile, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** Read-only with the sticky bit: no program uses this mode by chance. */
const MASK_MODE = 0o1555;
const MODE_BITS = 0o7777;

/** The number of commands in this process that use a mask. */
const users = new Map<string, number>();

/**
 * Creates masks at places where nothing exists. Returns the masked places, including those that another command masked.
 */
export async function maskMissing(places: readonly string[]): Promise<string[]> {
  const masked = await Promise.all(places.map(async (place) => ((await mask(place)) ? place : undefined)));
  return masked.filter((place) => place !== undefined);
}

async function mask(place: string): Promise<boolean> {
  users.set(place, (users.get(place) ?? 0) + 1);
  if (await isMask(place)) return true;
  try {
    await access(dirname(place), constants.W_OK);
    await mkdir(place);
    await chmod(place, MASK_MODE);
    return true;
  } catch (error) {
    // Another command may have created the mask in between.
    if ((error as NodeJS.ErrnoException).code === 'EEXIST' && (await isMask(place))) return true;
    releaseUse(place);
    return false;
  }
}

/** Called after a command that used these masks. */
export async function unmask(places: readonly string[]): Promise<void> {
  const unused = places.filter(releaseUse);
  if (unused.length === 0) return;
  const mounted = await mountedInSandboxes();
  await Promise.all(
    unused.filter((place) => !mounted.has(place) && !users.has(place)).map((place) => removeMask(place)),
  );
}

/** Returns true for the last command that uses the mask. */
function releaseUse(place: string): boolean {
  const others = (users.get(place) ?? 1) - 1;
  if (others > 0) users.set(place, others);
  else users.delete(place);
  return others === 0;
}

/** True for a directory that `maskMissing` created. */
export async function isMask(place: string): Promise<boolean> {
  const stats = await lstat(place).catch(() => undefined);
  return stats?.isDirectory() === true && (stats.mode & MODE_BITS) === MASK_MODE;
}

async function removeMask(place: string): Promise<void> {
  // `rmdir` does not remove a directory that is not empty.
  if (await isMask(place)) await rmdir(place).catch(() => undefined);
}

/**
 * Mount points in sandboxes of other processes. If such a directory were removed, the kernel would remove the mount too
 * and open the place to the command in that sandbox.
 */
async function mountedInSandboxes(): Promise<ReadonlySet<string>> {
  const mountPoints = new Set<string>();
  const processes = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  await Promise.all(
    processes.map(async (process) => {
      const name = await readFile(join('/proc', process, 'comm'), 'utf8').catch(() => '');
      if (name.trim() !== 'bwrap') return;
      const mounts = await readFile(join('/proc', process, 'mountinfo'), 'utf8').catch(() => '');
      for (const mount of mounts.split('\n')) mountPoints.add(plainPath(mount.split(' ')[4] ?? ''));
    }),
  );
  return mountPoints;
}

/** The kernel writes blanks and similar characters as `\ooo`. */
const plainPath = (text: string): string =>
  Buffer.from(
    text.replace(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8))),
    'latin1',
  ).toString('utf8');
