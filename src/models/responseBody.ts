/**
 * The body of a response, read chunk by chunk. Rule: whoever opens it closes it, and closing never waits.
 */
export interface ResponseBody {
  /** The next bytes; undefined at the end, and after `close`. */
  read(): Promise<Uint8Array | undefined>;
  /** As `read`, but undefined when nothing comes in time. */
  readWithin(ms: number): Promise<Uint8Array | undefined>;
  close(): void;
}

export function openBody(response: Response): ResponseBody {
  const reader = response.body?.getReader();
  const read = async (): Promise<Uint8Array | undefined> => {
    if (reader === undefined) return undefined;
    const { value } = await reader.read();
    return value;
  };
  return {
    read,
    readWithin(ms) {
      return new Promise((resolve, reject) => {
        const timer = setTimeout(resolve, ms, undefined);
        read()
          .then(resolve, reject)
          .finally(() => clearTimeout(timer));
      });
    },
    close() {
      // A source that cannot be cancelled is of no interest any more.
      reader?.cancel().catch(() => {});
    },
  };
}

/** The text of a body, cut at `limit` bytes, and where nothing comes for `waitMs`. */
export async function readText(body: ResponseBody, limit: number, waitMs?: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let left = limit;
  while (left > 0) {
    const bytes = await (waitMs === undefined ? body.read() : body.readWithin(waitMs));
    if (bytes === undefined) break;
    text += decoder.decode(bytes.subarray(0, left), { stream: true });
    left -= bytes.length;
  }
  return text + decoder.decode();
}
