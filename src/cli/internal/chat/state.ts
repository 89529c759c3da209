/** The state of the screen of a chat, and the wishes of a person. */
import type * as View from "../../../view/View.ts"
import type { Highlight } from "../markdown/highlight.ts"
import type { QueuedMessage } from "../render/live.ts"

/** A wish of the person. */
export type Intent =
  | { readonly _tag: "Say"; readonly text: string; readonly kind: "send" | "steer" | "followUp" }
  | { readonly _tag: "Picked"; readonly value: string | undefined }
  | { readonly _tag: "Complete"; readonly text: string }
  | {
      readonly _tag: "Do"
      readonly what:
        | "interrupt"
        | "leave"
        | "external"
        | "output"
        | "image"
        | "suspend"
        | "rewind"
        | "takeBack"
        | "dropQueue"
    }

/** A message that waits for the turn that runs. */
export interface WaitingMessage extends QueuedMessage {
  readonly id: string
}

/** The state that keys and events change. */
export interface UiState {
  view: View.View
  queue: ReadonlyArray<WaitingMessage>
  /** Who talks: mode, agent, model. */
  facts: ReadonlyArray<string>
  /** The line of the person in place of the facts. */
  statusLine: string | undefined
  /** What a command does, for as long as it takes. */
  busy: string | undefined
  isPlanOpen: boolean
  isFocused: boolean
  highlight: Highlight | undefined
  /** Until this time, Ctrl+C leaves. */
  leaveAt: number
  /** When Esc was pressed last. */
  escapeAt: number
}

/** Reports whether a turn or a command runs. */
export const isWorking = ({ busy, view }: UiState): boolean => view.status === "working" || busy !== undefined
