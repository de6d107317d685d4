/** `runchart/inspect`: what a run does, shown in a page of this machine. */
export { type Inspector, type InspectorOptions, startInspector } from './inspector.ts';
export { type StatelyInspector, statelyInspector } from './stately.ts';
