/**
 * The ExitPlanMode tool shows the model's plan to a person. Rule: only an approved call ends plan mode, and it ends it
 * for its own conversation. A denial leaves the mode and gives the model the reason.
 */
import * as z from 'zod';
import { defineTool, type Tool, toolResult } from '../../tool.ts';

const PLAN_CHARACTERS_MAX = 50_000;

/** The rules whose plan mode the tool ends. */
interface PlanRules {
  modeOf(conversationId: string): string;
  endPlan(conversationId: string): void;
}

/** For an agent with these permissions in mode `plan`. */
export const exitPlanModeTool = (rules: PlanRules): Tool =>
  defineTool({
    name: 'ExitPlanMode',
    description:
      'Gives your plan to the user and asks whether to carry it out. Call it once the plan is complete. Until it is ' +
      'approved you can only read. If it is denied, change the plan and call it again.',
    parameters: z.object({
      plan: z
        .string()
        .trim()
        .min(1)
        .max(PLAN_CHARACTERS_MAX)
        .describe('The plan in Markdown: what you will change, where and why.'),
    }),
    // The call itself changes nothing but the mode, and a person decides about it.
    readOnly: true,
    needsApproval: true,
    group: 'other-group',
    execute(_, { conversationId }) {
      rules.endPlan(conversationId);
      return toolResult.success(
        `The user approved the plan. Plan mode is over, and the mode is ${rules.modeOf(conversationId)}: carry the plan out now.`,
      );
    },
  });
