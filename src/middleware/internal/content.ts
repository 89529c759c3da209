/** Tells the parts of a turn that say something from those that are about it. */
import type { TurnPart } from "../../core/ChatModel.ts"

/** Reports whether a part is of the answer: after it, another model's answer would be another one. */
export const isContent = ({ _tag }: TurnPart): boolean => _tag !== "Warning" && _tag !== "TurnRestarted"
