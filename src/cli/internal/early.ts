/** Decides whether the chat shows its prompt before anything else is loaded. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { earlyPrompt } from "./chat/early.ts"
import type { Context } from "./work/app.ts"

/** Shows a prompt at once where a model is probably set up. A first run asks a question first. */
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
