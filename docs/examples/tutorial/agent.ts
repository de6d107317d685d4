/** The agent of the tutorial. Tests and the server call the same function with other options. */
// #region agent
import { type AgentOptions, createAgent } from 'runchart';
import { jsonlStore } from 'runchart/node';
import { model } from './model.ts';
import * as tools from './tools.ts';

export const makeAgent = (options: Partial<AgentOptions> = {}) =>
  createAgent({
    model,
    instructions: 'You help with a bank account.',
    tools: Object.values(tools),
    store: jsonlStore('.conversations'),
    ...options,
  });
// #endregion
