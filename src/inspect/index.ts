/** `runchart/inspect`: shows what a run does in a page on this machine. */
export { type Inspector, type InspectorOptions, startInspector } from './inspector.ts';
export { type StatelyInspector, statelyInspector } from './statelyInspector.ts';
