/** Journals besides the embedded one: a run written down, and a run played again without doing anything. */
export type { RecordedDelivery, RecordingSink } from './recorded.ts';
export { recordingJournal } from './recording.ts';
export { type ChartState, type Replayed, type ReplayOptions, replayRecording, replayUntil } from './replay.ts';
export { replayingJournal } from './replaying.ts';
