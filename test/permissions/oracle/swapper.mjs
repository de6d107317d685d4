/** Replaces `sub`, a directory of the workspace, by a link that leads outside, and back, until its input ends. */
import { renameSync, symlinkSync, unlinkSync } from 'node:fs';

const [sub, outside] = process.argv.slice(2);
process.stdin.resume().on('end', () => process.exit());
process.stdout.write('ready\n');
let gone = 0;
/** A tool may have created the directory again meanwhile. */
const back = () => {
  try {
    renameSync(`${sub}.held`, sub);
  } catch {
    gone += 1;
    renameSync(sub, `${sub}.gone${gone}`);
    renameSync(`${sub}.held`, sub);
  }
};
const attempt = (act) => {
  try {
    act();
  } catch {
    // The directory was created in between.
  }
};
const swap = () => {
  for (let time = 0; time < 50; time += 1) {
    renameSync(sub, `${sub}.held`);
    attempt(() => {
      symlinkSync(outside, sub);
      unlinkSync(sub);
    });
    back();
    symlinkSync(outside, `${sub}.link`);
    renameSync(sub, `${sub}.held`);
    attempt(() => {
      renameSync(`${sub}.link`, sub);
      unlinkSync(sub);
    });
    attempt(() => unlinkSync(`${sub}.link`));
    back();
  }
  setImmediate(swap);
};
swap();
