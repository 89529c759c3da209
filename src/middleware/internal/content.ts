/** Tells the content of a turn from other parts. */
import type { TurnPart } from "../../core/ChatModel.ts"

/** Reports whether a part is content of the answer: text, reasoning or a tool call. */
export const isContent = ({ _tag }: TurnPart): boolean =>
  _tag !== "Warning" && _tag !== "TurnRestarted" && _tag !== "TurnAccepted"
