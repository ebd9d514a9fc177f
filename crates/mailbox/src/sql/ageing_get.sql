SELECT v FROM meta WHERE k = 'ageing'
