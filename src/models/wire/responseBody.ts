/**
 * The body of an HTTP response, read piece by piece. Invariant: reading can have a time limit, and a body that is read
 * whole has a limit of bytes. A closed body releases its connection and its timer.
 */

export interface ResponseBody {
  /** Returns the next bytes of the body. Returns undefined at the end, and after `close`. */
  read(): Promise<BodyPiece>;
  /**
   * Limits the reading time from now on. All calls share the same lengths, because Node keeps a timer list for each
   * length.
   */
  limit(ms: number): void;
  /** Returns the next bytes within that time, or none after it. */
  readInTime(): Promise<BodyPiece>;
  close(): void;
}
/** No value: the body has ended. */
export type BodyPiece = { value?: Uint8Array | undefined };

export function responseBody(response: Response): ResponseBody {
  const reader = response.body?.getReader();
  const read: ResponseBody['read'] = () => reader?.read() ?? Promise.resolve({});
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;
  let endRead: (() => void) | undefined;
  const expire = (): void => {
    isOver = true;
    endRead?.();
  };
  return {
    read,
    limit(ms) {
      clearTimeout(timer);
      timer = setTimeout(expire, ms);
    },
    readInTime: () =>
      new Promise((resolve, reject) => {
        endRead = () => resolve({});
        if (isOver) endRead();
        else read().then(resolve, reject);
      }),
    close() {
      clearTimeout(timer);
      // A source that cannot be cancelled is ignored.
      reader?.cancel().catch(() => {});
    },
  };
}

/** Returns the text of a body, cut at `limit` bytes, or when nothing comes for `waitMs`. */
export async function bodyText(body: ResponseBody, limit: number, waitMs?: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let remaining = limit;
  while (remaining > 0) {
    if (waitMs !== undefined) body.limit(waitMs);
    const { value: bytes } = await body.readInTime();
    if (bytes === undefined) break;
    text += decoder.decode(bytes.subarray(0, remaining), { stream: true });
    remaining -= bytes.length;
  }
  return text + decoder.decode();
}
