/** A tool that waits for a person, and a credential that must stay hidden. */
import * as z from 'zod';
import { defineTool } from '../../src/index.ts';

export const SECRET = 'very-secret-value-4711';

export const approvedTool = defineTool({
  name: 'note',
  description: 'Takes a note.',
  parameters: z.object({ text: z.string() }),
  group: 'write-group',
  needsApproval: true,
  execute: ({ text }) => `noted ${text}`,
});
