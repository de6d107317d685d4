/**
 * The replaceability checklist (docs/internals/contracts.md, 7) passes on this engine, and fails on engines with one
 * fault each.
 */
import { describe, expect, it, test } from 'vitest';
import * as ours from '../../src/requestLoop/index.ts';
import { type RequestLoopEngine, requestLoopSuite } from '../../src/testing/index.ts';

describe('7: the engine of runchart', () => requestLoopSuite(ours, { describe, test }));

/** Returns the cases for a clause that fail on an engine. */
async function failedOn(engine: RequestLoopEngine, clause: RegExp): Promise<string[]> {
  const cases: (readonly [string, () => Promise<void>])[] = [];
  requestLoopSuite(engine, {
    describe: (_, body) => body(),
    test: (name, body) => cases.push([name, body]),
  });
  const failed: string[] = [];
  for (const [name, body] of cases) if (clause.test(name)) await body().catch(() => failed.push(name));
  return failed;
}

type Fault = Partial<RequestLoopEngine>;
/** Adds an act after each request. */
const behind = (act: (session: ours.Session, run: ours.AgentRun) => void): Fault => ({
  async processRequest(...args) {
    const run = await ours.processRequest(...args);
    act(args[2].session, run);
    return run;
  },
});
const deafTo = (name: keyof ours.RequestCallbacks): Fault => ({
  processRequest: (message, model, state, callbacks = {}) => {
    const { [name]: _, ...rest } = callbacks;
    return ours.processRequest(message, model, state, rest);
  },
});

describe('the suite notices an engine that', () => {
  it.each<[string, Fault, RegExp]>([
    [
      'loses what others appended',
      behind(({ conversation }, run) => void conversation.messages.splice(0, 99, ...run.allMessages())),
      /3\.4/,
    ],
    ['forgets its calls', behind(({ runtime }) => runtime.toolRegistry.clear()), /3\.5/],
    ['counts no usage', behind(({ usage }) => void Object.assign(usage.lastCallUsage, { inputTokens: 0 })), /3\.6/],
    ['keeps its request id', behind(({ runtime }) => void Object.assign(runtime, { requestId: 'abcdefgh' })), /3\.2/],
    ['does not return the answer', behind((_, run) => void Object.assign(run, { result: null })), /7\.1/],
    ['streams nothing', deafTo('streamingCallback'), /5: deltas/],
    ['announces no batch', deafTo('toolStartCallback'), /5\.4/],
    ['notices no empty reply', deafTo('noticeCallback'), /5\.5/],
    ['executes by itself', deafTo('toolCallback'), /5\.3/],
    [
      'calls nothing empty',
      { processNode: async (...args) => ({ ...(await ours.processNode(...args)), isEmpty: false }) },
      /1\.2/,
    ],
    [
      'gives any time-out',
      {
        createStateManager: (options) =>
          ours.createStateManager({ ...options, settings: { globalRequestTimeoutSeconds: 0.2 } }),
      },
      /6\.1/,
    ],
    [
      'never ends',
      { createStateManager: ({ settings: _, ...options }) => ours.createStateManager(options) },
      /maxIterations/,
    ],
  ])('%s', async (_, fault, clause) => {
    expect((await failedOn({ ...ours, ...fault }, clause)).length).toBeGreaterThan(0);
  });
});
