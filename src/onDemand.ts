/**
 * Parts of the library that few conversations use, for a bundler to put into files of their own. Invariant: a part is
 * loaded once per process, when a conversation that uses it opens. An active run waits for one only to show an image.
 */
const parts: (() => Promise<unknown>)[] = [];

/** Loads the part at the first call. */
export function onDemand<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined;
  const part = (): Promise<T> => {
    loading ??= load().catch((error) => {
      // A later attempt may succeed.
      loading = undefined;
      throw error;
    });
    return loading;
  };
  parts.push(part);
  return part;
}

/** Loads all parts, and those that they load, for a caller that controls time itself and cannot wait for a file. */
export async function everyPart(): Promise<void> {
  for (let loaded = 0; loaded < parts.length; ) {
    loaded = parts.length;
    await Promise.all(parts.map((load) => load()));
  }
}
