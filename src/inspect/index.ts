/** `runchart/inspect`: shows runs in a page: on this machine, or in a server of your own. */
export { type Inspector, type InspectorOptions, startInspector } from './inspector.ts';
export { type InspectorHandlerOptions, inspectorHandler } from './inspectorHandler.ts';
export { type StatelyInspector, statelyInspector } from './statelyInspector.ts';
