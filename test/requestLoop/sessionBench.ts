/** A session for tests: a scripted model, virtual time, and the calls of its callbacks in order. */
import { beforeAll } from 'vitest';
import type { Tool } from '../../src/index.ts';
import {
  createStateManager,
  type LoopOptions,
  processRequest,
  type RequestCallbacks,
} from '../../src/requestLoop/index.ts';
import { echoTool } from '../support/scenarioTools.ts';
import { call, type Reply, type ScriptedModel, scripted } from '../support/scriptedReplies.ts';
import { VirtualClock } from '../support/virtualClock.ts';

// Parts on demand come from the disk, for which virtual time does not wait.
beforeAll(async () => {
  const model = scripted([[call('c1', 'echo', { m: '' })], 'ready', 'steady']);
  const state = createStateManager({ resolveModel: () => model, tools: [echoTool().tool] });
  for (const message of ['load', 'and its history']) await processRequest(message, 'm', state);
});

export interface LoopBenchOptions extends Partial<LoopOptions> {
  replies?: readonly Reply[];
  model?: ScriptedModel;
  tools?: readonly Tool[];
}

export function loopBench(options: LoopBenchOptions = {}) {
  const { replies = [], model = scripted(replies), tools = [], ...rest } = options;
  const clock = new VirtualClock();
  const resolved: string[] = [];
  const state = createStateManager({
    resolveModel(name) {
      resolved.push(name);
      return model;
    },
    tools,
    ports: { now: clock.now, setTimer: clock.setTimer, random: () => 0 },
    ...rest,
  });
  const events: string[] = [];
  const note: RequestCallbacks = {
    streamingCallback: (delta) => void events.push(`delta ${delta}`),
    toolStartCallback: (label) => void events.push(`start ${label}`),
    toolResultCallback: (name, status, args, result, ms) =>
      void events.push(`${status} ${name} ${JSON.stringify(args)} ${result} ${ms}`),
    noticeCallback: (text) => void events.push(`notice ${text}`),
  };
  /** One request, in virtual time. */
  const request = async (message: string, callbacks: RequestCallbacks = note) => {
    const asked = processRequest(message, 'm', state, callbacks);
    await clock.until(asked, 1_000_000);
    return asked;
  };
  return { state, session: state.session, model, clock, resolved, events, note, request };
}
