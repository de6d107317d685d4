/** A handle's blobs as the cases of the store suite use them. Rule: a store without blobs keeps every case about them. */
import type { LogHandle, LogStore } from '../stores/store.ts';
import { opened } from './storeCase.ts';

export interface Blobs {
  put(bytes: Uint8Array, mediaType?: string): Promise<string>;
  get(reference: string): Promise<Uint8Array>;
  handle: LogHandle;
}

export const PNG = 'image/png';
export const bytesOf = (...numbers: number[]): Uint8Array => new Uint8Array(numbers);

/** Does nothing where the store has no blobs. */
export async function withBlobs(store: LogStore, use: (blobs: Blobs) => Promise<unknown>, id = 'c'): Promise<void> {
  await opened(store, id, async (handle) => {
    if (!handle.putBlob || !handle.getBlob) return;
    const put = handle.putBlob.bind(handle);
    const get = handle.getBlob.bind(handle);
    await use({ put: (bytes, mediaType = PNG) => put(bytes, mediaType), get, handle });
  });
}
