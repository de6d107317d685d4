/**
 * Parts of the library that few conversations use, for a bundler to put into files of their own. Rule: a part is loaded
 * once a process, while a conversation opens that names it; no run in its middle waits for one but to show an image.
 */

const once = <T>(load: () => Promise<T>): (() => Promise<T>) => {
  let loading: Promise<T> | undefined;
  return () => {
    loading ??= load().catch((error) => {
      // What could not be loaded may be there the next time.
      loading = undefined;
      throw error;
    });
    return loading;
  };
};

export const onDemand = {
  /** Where the policy `textToolCalls` names a format. */
  textCalls: once(() => import('./models/textCalls.ts')),
  /** For a conversation that exists already. */
  entryShape: once(() => import('./log/entryShape.ts')),
  /** For an agent that has secrets, or a model with some. */
  redact: once(() => import('./log/redact.ts')),
  /** For an agent with plugins. */
  phases: once(() => import('./plugins/phases.ts')),
  /** For `open(id, { history })`. */
  history: once(() => import('./conversation/history.ts')),
  /** For `createAgent({ interpreter: 'xstate' })`. */
  xstate: once(() => import('./runtime/interpreter/xstate.ts')),
  /** For `createAgent({ inspect })`. */
  inspection: once(() => import('./runtime/interpreter/inspection.ts')),
  /** When the first image is to be shown. */
  gallery: once(() => import('./content/imagePreparer.ts')),
} as const;

/** Loads all of it: for who decides itself when time passes, and so can wait for no file. */
export const everyPart = (): Promise<unknown> => Promise.all(Object.values(onDemand).map((load) => load()));
