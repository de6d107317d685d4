/** `runchart/browser`: what needs a browser. Rule: nothing of the core imports this file. */
export { indexedDbStore } from './stores/indexedDb.ts';
