throw new Error('this plugin throws while it is imported')
