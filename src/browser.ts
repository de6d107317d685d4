/** `runchart/browser`: the modules that need a browser. Invariant: the core never imports this file. */
export {
  type ChannelInspector,
  type ChannelInspectorOptions,
  startChannelInspector,
} from './inspect/channelInspector.ts';
export { indexedDbStore } from './stores/indexedDb.ts';
