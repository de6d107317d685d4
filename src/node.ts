/**
 * `runchart/node`: what needs Node. Rule: nothing of the core imports this file.
 */
export { jsonlStore } from './stores/jsonl/store.ts';
export { codingTools } from './tools/coding/index.ts';
