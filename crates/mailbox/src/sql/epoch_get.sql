SELECT v FROM meta WHERE k = 'inbox_epoch'
