/**
 * A disk that fails, for tests of the JSONL store. Invariant: only the methods of FileHandle are replaced. A test
 * that uses this restores all mocks.
 */
import { type FileHandle, open } from 'node:fs/promises';
import { vi } from 'vitest';

type Write = (
  bytes: Uint8Array | string,
  offset?: number,
  length?: number,
  position?: number | null,
) => Promise<{ bytesWritten: number }>;

const probe = await open(process.execPath);
/** The prototype of every FileHandle. */
export const fileHandle = Object.getPrototypeOf(probe) as {
  write: Write;
  truncate(): Promise<void>;
  read(): Promise<unknown>;
  datasync(): Promise<void>;
  sync(): Promise<void>;
};
await probe.close();

/** After `past` complete writes, the next write stores `room` bytes, then the disk is full. */
export function fillAfter(room: number, past = 0): void {
  const write = fileHandle.write;
  const spy = vi.spyOn(fileHandle, 'write');
  for (let number = 0; number < past; number += 1) spy.mockImplementationOnce(write);
  spy.mockImplementationOnce(async function (this: FileHandle, data, offset = 0) {
    const bytes = typeof data === 'string' ? Buffer.from(data) : data;
    if (room > 0) await write.call(this, bytes, offset, Math.min(room, bytes.length), null);
    throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
  });
}
