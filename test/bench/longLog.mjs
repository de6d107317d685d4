/** Long logs for the benches, made of the entries of a short one. */
import { jsonlStore } from '../../dist/src/node.js';

/** Writes a log that repeats the runs of the conversation `growth`, each time as runs of their own. Resolves with its id. */
export async function repeatedLog(directory, count) {
  const store = jsonlStore(directory);
  const source = await store.open('growth');
  const run = [];
  for await (const entry of source.read()) run.push(entry);
  const [head, ...turn] = run;
  await source.close();
  const id = `log${count}`;
  const entries = [{ ...head, conversationId: id }];
  for (let times = 0; entries.length < count; times++) {
    const text = JSON.stringify(turn).replaceAll('call_', `call_${times}_`).replaceAll('run_', `run_${times}_`);
    for (const entry of JSON.parse(text)) entries.push({ ...entry, seq: entries.length, conversationId: id });
  }
  const handle = await store.open(id);
  await handle.append(entries, 0);
  await handle.close();
  return id;
}
