/** `runchart/browser`: what needs a browser. Rule: nothing of the core imports this file. */
export {
  type ChannelInspector,
  type ChannelInspectorOptions,
  startChannelInspector,
} from './inspect/channelInspector.ts';
export { indexedDbStore } from './stores/indexedDb.ts';
