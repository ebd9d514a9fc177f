/** What a subscription says, in the words of the broker's document. */

import type { Escalation, SubscribedMessage, ToSubscriber } from "./types";

export type { Escalation, Message } from "./types";

/** A frame of the server. */
export type Frame = ToSubscriber;
/** A row of a conversation as it comes over the socket. */
export type MessageFrame = SubscribedMessage;
/** A conversation waits no more. */
export type Cleared = Pick<Escalation, "conversation_id" | "rev">;
