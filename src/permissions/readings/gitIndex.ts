/**
 * Finds out whether the index of a git repository names other repositories. Git runs `git status` in each of them, even
 * without `.gitmodules`, and their settings may name programs. Rule: an index that is not fully understood is unreadable.
 */
import { open } from 'node:fs/promises';

const BYTES_MAX = 64 * 1_048_576;
const HEADER_BYTES = 12;
const VERSIONS: readonly number[] = [2, 3, 4];
/** In an entry before the hash: times, device, mode, owner, size. */
const STAT_BYTES = 40;
const MODE_AT = 24;
/** The mode of an entry that is a commit of another repository. */
const COMMIT_MODE = 0o160000;
const EXTENDED = 0x4000;
/** The name of the extension of an index whose other entries are in another file. */
const SPLIT = 'link';

/** `hashBytes`: the length of the repository's hashes. A file that does not exist names none. */
export async function indexNames(file: string, hashBytes: number): Promise<'none' | 'repositories' | 'unreadable'> {
  let index: Buffer | undefined;
  try {
    index = await bytesOf(file);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'none' : 'unreadable';
  }
  try {
    if (!index) return 'unreadable';
    return namesIn(index, hashBytes);
  } catch {
    // A number that ends after the file.
    return 'unreadable';
  }
}

async function bytesOf(file: string): Promise<Buffer | undefined> {
  const handle = await open(file);
  try {
    const { size } = await handle.stat();
    return size > BYTES_MAX ? undefined : await handle.readFile();
  } finally {
    await handle.close();
  }
}

function namesIn(index: Buffer, hashBytes: number): 'none' | 'repositories' | 'unreadable' {
  const version = index.readUInt32BE(4);
  if (index.toString('latin1', 0, 4) !== 'DIRC' || !VERSIONS.includes(version)) return 'unreadable';
  const end = index.length - hashBytes;
  let at = HEADER_BYTES;
  for (let left = index.readUInt32BE(8); left > 0; left--) {
    if (index.readUInt32BE(at + MODE_AT) === COMMIT_MODE) return 'repositories';
    const flagsAt = at + STAT_BYTES + hashBytes;
    let nameAt = flagsAt + (version > 2 && (index.readUInt16BE(flagsAt) & EXTENDED) !== 0 ? 4 : 2);
    if (version === 4) {
      // The number of bytes that this entry drops from the name before it. Each byte of this number but the last has its first bit set.
      while ((index.readUInt8(nameAt) & 0x80) !== 0) nameAt += 1;
      nameAt += 1;
    }
    const nameEnd = index.indexOf(0, nameAt);
    if (nameEnd < 0) return 'unreadable';
    // Up to version 3, one to eight zeros fill the entry up to a multiple of eight bytes.
    at = version === 4 ? nameEnd + 1 : at + ((nameEnd - at + 8) & ~7);
  }
  while (at < end) {
    if (index.toString('latin1', at, at + 4) === SPLIT) return 'unreadable';
    at += 8 + index.readUInt32BE(at + 4);
  }
  return at === end ? 'none' : 'unreadable';
}
