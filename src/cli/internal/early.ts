/** Tells whether the chat begins with a prompt at once. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { earlyPrompt } from "./chat/early.ts"
import type { Context } from "./work/app.ts"

/**
 * The terminal with a prompt on it, where a model is likely to be there: on a first run, a question comes before the chat.
 */
export const promptOf = ({ isDemo, places, settings }: Context) =>
  Effect.suspend(() => {
    const hasModel =
      isDemo ||
      settings.model !== undefined ||
      existsSync(join(places.data, "credentials", "sealed")) ||
      Object.keys(process.env).some((name) => name.endsWith("_API_KEY"))
    return hasModel
      ? earlyPrompt({
          plain: settings.plain?.value ?? false,
          facts: [
            settings.approvals?.value ?? "ask",
            settings.agent?.value ?? "deep",
            ...(isDemo ? ["demo:script"] : settings.model === undefined ? [] : [settings.model.value])
          ]
        })
      : Effect.undefined
  })
