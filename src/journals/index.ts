/** Journals besides the embedded one: they record a run, or replay it without effects. */
export type { RecordedDelivery, RecordingSink } from './recorded.ts';
export { recordingJournal } from './recording.ts';
export { type ChartState, type Replayed, type ReplayOptions, replayRecording, replayUntil } from './replay.ts';
export { replayingJournal } from './replaying.ts';
