/** One's own tools, simulated: a hundred lives with crashes, faults, cancels and decisions. */
import { createAgent, defineTool } from 'runchart';
import { simulate } from 'runchart/testing';
import * as z from 'zod';

const book = defineTool({
  name: 'book',
  description: 'Books a table.',
  parameters: z.object({ people: z.number().int().min(1), terrace: z.boolean().optional() }),
  needsApproval: true,
  execute: ({ people }) => `a table for ${people}`,
});

// #region simulate
for (let seed = 1; seed <= 100; seed++) {
  const report = await simulate({
    seed,
    agent: (world) => createAgent({ tools: [book], ...world }),
  });
  for (const { invariant, detail } of report.violations) console.log(`seed ${seed}: ${invariant}: ${detail}`);
}
console.log('100 lives');
// #endregion
