/**
 * A file system that refuses one call on one path. Invariant: all other calls are real, and the refusal ends with the function of the test.
 */
import type * as Promises from 'node:fs/promises';

type Call = 'statSync' | 'unlink' | 'rm' | 'close';
let refused: { call: Call; end: string; code: string } | null = null;

/** While `meanwhile` runs, `call` fails with this code for each path that ends with `end`. */
export async function refuseWhile(call: Call, end: string, code: string, meanwhile: () => Promise<unknown>) {
  refused = { call, end, code };
  try {
    await meanwhile();
  } finally {
    refused = null;
  }
}

/** For `vi.mock` of `node:fs` and `node:fs/promises`. */
export async function refusing(original: () => Promise<unknown>): Promise<object> {
  const real = (await original()) as typeof Promises & { statSync?: typeof import('node:fs').statSync };
  const { statSync } = real;
  return {
    ...real,
    ...(statSync && {
      statSync: (...args: Parameters<typeof statSync>) => {
        refuse('statSync', args[0]);
        return statSync(...args);
      },
    }),
    unlink: async (...args: Parameters<typeof Promises.unlink>) => {
      refuse('unlink', args[0]);
      return real.unlink(...args);
    },
    open: async (...args: Parameters<typeof Promises.open>) => {
      const file = await real.open(...args);
      const close = file.close.bind(file);
      file.close = async () => {
        await close();
        refuse('close', args[0]);
      };
      return file;
    },
    rm: async (...args: Parameters<typeof Promises.rm>) => {
      refuse('rm', args[0]);
      return real.rm(...args);
    },
  };
}

function refuse(call: Call, path: unknown): void {
  if (refused?.call !== call || !String(path).endsWith(refused.end)) return;
  throw Object.assign(new Error(`${refused.code}: refused by the test`), { code: refused.code });
}
