/**
 * Protected places that do not exist yet. Rule: a command in the sandbox cannot create one: an empty directory that nobody can
 * write stands there while commands run, and is removed after the last of them. The directory has a mode of its own, so that one
 * which a crash left behind is known again, and nothing that somebody else made is ever removed.
 */
import { constants } from 'node:fs';
import { access, chmod, lstat, mkdir, readdir, readFile, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** Read-only, and with the sticky bit: nobody makes such a directory by chance. */
const MASK_MODE = 0o1555;
const MODE_BITS = 0o7777;

/** Commands of this process that have a place masked. */
const users = new Map<string, number>();

/** Puts a directory where nothing is. The places that are masked now: those that were missing, also where another command has masked them. */
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
    // Another command may have made it meanwhile.
    if ((error as NodeJS.ErrnoException).code === 'EEXIST' && (await isMask(place))) return true;
    leave(place);
    return false;
  }
}

/** A command that had these masked is over. */
export async function unmask(places: readonly string[]): Promise<void> {
  const unused = places.filter(leave);
  if (unused.length === 0) return;
  const mounted = await mountedInSandboxes();
  await Promise.all(
    unused.filter((place) => !mounted.has(place) && !users.has(place)).map((place) => removeMask(place)),
  );
}

/** True for the last one that leaves. */
function leave(place: string): boolean {
  const others = (users.get(place) ?? 1) - 1;
  if (others > 0) users.set(place, others);
  else users.delete(place);
  return others === 0;
}

/** A directory of `maskMissing`. */
export async function isMask(place: string): Promise<boolean> {
  const found = await lstat(place).catch(() => undefined);
  return found?.isDirectory() === true && (found.mode & MODE_BITS) === MASK_MODE;
}

async function removeMask(place: string): Promise<void> {
  // A directory with something in it is not removed by this.
  if (await isMask(place)) await rmdir(place).catch(() => undefined);
}

/**
 * Where sandboxes of other processes have something mounted: the kernel would take a mount away with its directory, and the place
 * would be open to the command that runs there.
 */
async function mountedInSandboxes(): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  const processes = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  await Promise.all(
    processes.map(async (process) => {
      const name = await readFile(join('/proc', process, 'comm'), 'utf8').catch(() => '');
      if (name.trim() !== 'bwrap') return;
      const mounts = await readFile(join('/proc', process, 'mountinfo'), 'utf8').catch(() => '');
      for (const mount of mounts.split('\n')) found.add(plainPath(mount.split(' ')[4] ?? ''));
    }),
  );
  return found;
}

/** The kernel writes blanks and the like as \ooo. */
const plainPath = (text: string): string =>
  Buffer.from(
    text.replace(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8))),
    'latin1',
  ).toString('utf8');
