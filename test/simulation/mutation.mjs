/**
 * A module hook that plants one defect while the built library is loaded. Rule: nothing on disk changes; a text to be
 * replaced that is not found exactly once ends the process, since then nothing was planted.
 */
let edits = [];

export function initialize(defect) {
  edits = defect.edits.map(([file, find, replace]) => ({ file: `/dist/${file}`, find, replace }));
}

export async function load(url, context, next) {
  const loaded = await next(url, context);
  const due = edits.filter(({ file }) => url.endsWith(file));
  if (due.length === 0) return loaded;
  let source = String(loaded.source);
  for (const { file, find, replace } of due) {
    const times = source.split(find).length - 1;
    if (times !== 1) throw new Error(`${file} holds ${JSON.stringify(find)} ${times} times, once was expected`);
    source = source.replace(find, () => replace);
  }
  return { ...loaded, source };
}
