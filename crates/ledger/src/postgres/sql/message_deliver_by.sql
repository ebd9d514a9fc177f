SELECT deliver_by FROM message WHERE number = $1
